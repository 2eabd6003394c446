import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.Arrays;

/**
 * Runs an official program that looks for its name server at 127.0.0.1:9876 whatever it is told: listens there,
 * inside the program's own container, and passes everything on to NAMESRV_ADDR.
 */
public class Loopback {
    private static final int PORT = 9876;

    public static void main(String[] arguments) throws Exception {
        String[] target = System.getenv("NAMESRV_ADDR").split(":");
        ServerSocket listener = new ServerSocket(PORT, 50, InetAddress.getByName("127.0.0.1"));
        start(() -> {
            while (true) {
                Socket client = listener.accept();
                Socket server = new Socket(target[0], Integer.parseInt(target[1]));
                start(() -> pump(client, server));
                start(() -> pump(server, client));
            }
        });
        Object rest = Arrays.copyOfRange(arguments, 1, arguments.length);
        Class.forName(arguments[0]).getMethod("main", String[].class).invoke(null, rest);
    }

    private interface Task {
        void run() throws IOException;
    }

    private static void start(Task task) {
        Thread thread = new Thread(() -> {
            try {
                task.run();
            } catch (IOException closed) {
                System.err.println("loopback: " + closed);
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private static void pump(Socket from, Socket to) throws IOException {
        byte[] bytes = new byte[65536];
        try (InputStream in = from.getInputStream(); OutputStream out = to.getOutputStream()) {
            for (int count = in.read(bytes); count > 0; count = in.read(bytes)) {
                out.write(bytes, 0, count);
                out.flush();
            }
        }
    }
}
